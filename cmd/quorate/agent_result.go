package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"quorate.dev/snapshot"
)

// resultSize is how much of a termination message Kubernetes keeps for one container, in bytes.
// messageSize leaves room for the rest of the document: a manifest and a verification of the
// longest names take less than half of it.
const (
	resultSize  = 4096
	messageSize = 1024
)

// agentResult is what a command of the agent has done. The operator reads it from the status of the
// Pod.
type agentResult struct {
	Manifest     *snapshot.Manifest     `json:"manifest,omitempty"`
	Verification *snapshot.Verification `json:"verification,omitempty"`
	Error        *agentError            `json:"error,omitempty"`
}

// agentError is why it was not done.
type agentError struct {
	// Reason is one CamelCase word, as of a condition.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// failure is an error as the operator reads it.
func failure(ctx context.Context, err error) *agentError {
	reason := reasonOf(err)
	if ctx.Err() != nil { // whatever failed because of it
		reason = "Interrupted"
	}
	return &agentError{Reason: reason, Message: shortened(err.Error(), messageSize)}
}

// write leaves the result in a file.
func (r agentResult) write(file string) error {
	document, err := json.Marshal(r)
	if err == nil && len(document) > resultSize {
		err = fmt.Errorf("it has %d bytes, and %d are kept", len(document), resultSize)
	}
	if err == nil {
		err = os.WriteFile(file, document, 0o644) //nolint:gosec // the kubelet reads it
	}
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// reasons are the words for errors that are not of a store.
var reasons = []struct {
	err    error
	reason string
}{
	{snapshot.ErrDamaged, "Damaged"},
	{snapshot.ErrOtherCluster, "OtherCluster"},
	{snapshot.ErrIdentity, "Identity"},
	{snapshot.ErrNoMember, "NoMember"},
	{snapshot.ErrNoManifest, "NotFound"},
	{snapshot.ErrTooOld, "EtcdTooOld"},
	{snapshot.ErrTooLarge, "LargerThanQuota"},
	{context.DeadlineExceeded, "TimedOut"},
	{snapshot.ErrNotFound, "NotFound"},
	{snapshot.ErrExists, "AlreadyExists"},
}

// reasonOf is the word of a store for its own failure, or ours.
func reasonOf(err error) string {
	if store, is := errors.AsType[*snapshot.StoreError](err); is {
		return string(store.Reason)
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	return "Failed"
}

// shortened is the beginning of a text, in whole characters.
func shortened(text string, bytes int) string {
	const cut = "..."
	if len(text) <= bytes {
		return text
	}
	end := bytes - len(cut)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cut
}
