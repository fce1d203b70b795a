package runtime

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
)

// Preview shows how a session would start its agent, and the first requests that it
// would send. It has secrets: see dialect.EnvVar.Secret and dialect.File.
type Preview struct {
	Launch     dialect.Launch  // program, arguments, environment and files
	Initialize json.RawMessage // the request member of the initialize request
	// Requests are the control requests after the answer to initialize, before the first
	// user message; each is a request member.
	Requests []json.RawMessage
	Warnings []session.Warning // options that are valid but perhaps do not do what you intend
	// Timeouts are Troupe's time limits. The agent's own limits are not included.
	Timeouts []Timeout
}

// Preview returns how the spec's agent would be started. It starts nothing. If the
// options cannot work, it returns the same error as [Runtime.Open].
func (spec *Spec) Preview() (*Preview, error) {
	in, d, p := &dialect.Input{}, spec.Dialect, &Preview{}
	ofPolicy, err := spec.fill(in, nil)
	if err != nil {
		return nil, err
	}
	if p.Launch, err = d.Launch(in); err != nil {
		return nil, err
	}
	p.Warnings = slices.Concat(spec.Warnings, ofPolicy, p.Launch.Warnings)
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
