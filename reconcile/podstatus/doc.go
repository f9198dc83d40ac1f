// Package podstatus puts into words what the status of a Pod says: why its containers do not start,
// and what an agent (quorate agent) in one of them has left. It calls no API server.
package podstatus
