package hooks

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/protocol"
)

// errAsyncDecision says that an output decides and is asynchronous. An agent does
// not wait for such a hook, so what the hook meant to stop would run.
var errAsyncDecision = errors.New("it is async and decides; the agent does not wait for an async hook, so leave Async out")

// contradiction returns an error for an asynchronous output that stops, asks or
// changes something.
func contradiction(out json.RawMessage) error {
	if !jsonscan.Valid(out) {
		return nil // it cannot be sent either
	}
	async := false
	for key, value := range protocol.Members(out) {
		async = async || string(key) == "async" && string(value) != "false"
	}
	if !async {
		return nil
	}
	// All members are looked at, and not the last of each key: which of two an
	// agent takes is its own business.
	for key, value := range protocol.Members(out) {
		switch string(key) {
		case "decision":
			if decides(value, protocol.DecisionApprove) {
				return fmt.Errorf("decision is %.40s: %w", value, errAsyncDecision)
			}
		case "continue":
			if string(value) == "false" {
				return fmt.Errorf("continue is false: %w", errAsyncDecision)
			}
		case "hookSpecificOutput":
			if err := specificContradiction(value); err != nil {
				return err
			}
		}
	}
	return nil
}

func specificContradiction(specific json.RawMessage) error {
	for key, value := range protocol.Members(specific) {
		switch string(key) {
		case "permissionDecision":
			if decides(value, string(protocol.HookAllow)) {
				return fmt.Errorf("permissionDecision is %.40s: %w", value, errAsyncDecision)
			}
		case "updatedInput":
			if string(value) != "null" {
				return fmt.Errorf("updatedInput is set: %w", errAsyncDecision)
			}
		case "decision":
			for key, value := range protocol.Members(value) {
				if string(key) == "behavior" && decides(value, string(protocol.BehaviorAllow)) {
					return fmt.Errorf("decision.behavior is %.40s: %w", value, errAsyncDecision)
				}
			}
		}
	}
	return nil
}

// decides reports whether value is a decision other than the one to continue.
func decides(value json.RawMessage, goOn string) bool {
	text, ok := protocol.StringValue(value)
	return string(value) != "null" && (!ok || text != "" && text != goOn)
}
