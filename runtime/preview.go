package runtime

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
)

// Preview is how a session would start its agent, and what it would say first. It
// holds secrets: see dialect.EnvVar.Secret and dialect.File.
type Preview struct {
	Launch     dialect.Launch  // program, arguments, environment and files
	Initialize json.RawMessage // what the first control request asks: its request member
	// Requests follow the answer to initialize, before the first user message.
	Requests []json.RawMessage
	Warnings []session.Warning // what is legal and probably unintended
	// Timeouts are the limits that would be in force on this side.
	Timeouts []Timeout
}

// Preview says how the spec's agent would be started, and starts nothing. It fails
// as Open does when the options cannot work.
func (spec *Spec) Preview() (*Preview, error) {
	in, err := spec.input()
	if err != nil {
		return nil, err
	}
	d, p := spec.Dialect, &Preview{}
	if p.Launch, err = d.Launch(in); err != nil {
		return nil, err
	}
	p.Warnings = slices.Concat(spec.Warnings, p.Launch.Warnings)
	if p.Initialize, err = d.Initialize(in); err != nil {
		return nil, err
	}
	for _, req := range d.AfterInitialize(in) {
		raw, err := d.Encode(req)
		if err != nil {
			return nil, fmt.Errorf("runtime: preview %s: %w", req.Subtype(), err)
		}
		p.Requests = append(p.Requests, raw)
	}
	p.Timeouts = spec.timeouts(in)
	return p, nil
}
