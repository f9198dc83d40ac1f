// Package backup makes EtcdBackups and EtcdBackupSchedules true: it runs the Jobs that take, verify
// and delete snapshots, and says what came of them. It talks to no etcd and to no store, and reads
// no Secret: the agents in the Jobs do.
//
// Read Plan first, which decides and is pure; then Reconciler.Reconcile, which is the whole loop:
// observe, plan, act, report. PlanSchedule and Scheduler.Reconcile are the same of a schedule.
//
// What is done is known from the API server alone. An attempt is written into the status before its
// Job is created, the Job is created only where there is none, and every attempt has a snapshot
// name of its own: so an operator that dies between any two writes leaves nothing that is taken
// twice under one name, and the next pass goes on.
package backup
