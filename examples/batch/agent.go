package main

import (
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The run is unattended, so tools without
// a rule are denied.
func options(name string) (*sdk.Options, error) {
	opts := &sdk.Options{AllowedTools: []string{"Read", "Grep", "Glob"}}
	switch name {
	case "scripted":
		opts.Backend = scripted.New(scripted.WithScript(script()), scripted.WithHistory(&scripted.MemoryHistory{}))
	case "claude":
		opts.Backend, opts.SystemPrompt = sdk.Claude(sdk.ClaudeConfig{}), sdk.PresetPrompt("")
	case "qoder":
		opts.Backend, opts.Auth = sdk.Qoder(sdk.QoderConfig{}), sdk.QoderCLIAuth()
	default:
		return nil, fmt.Errorf("-agent %q is not known: use scripted, claude or qoder", name)
	}
	return opts, nil
}

// script is an agent that finds the model overloaded at files whose number ends with 7,
// and forgets the verdict of those whose number ends with 3.
func script() *scripted.Script {
	overloaded, text := true, "the model is overloaded"
	work := func(steps ...scripted.Step) scripted.Steps {
		return append(scripted.Steps{
			scripted.Delay(150 * time.Millisecond),
			&scripted.ToolUse{Name: "Read", Input: map[string]any{"file_path": "code.go"}, Result: "package code", Takes: 100 * time.Millisecond},
		}, steps...)
	}
	good := work(scripted.Text("I have read it. VERDICT: good"))
	return &scripted.Script{
		Transcript: true, CostPerCall: 0.01,
		Turns: []scripted.Turn{
			{When: "Sum up", Steps: scripted.Steps{scripted.Text("All files were reviewed. VERDICT: ship it")}},
			{When: "not accepted", Steps: scripted.Steps{scripted.Text("VERDICT: good")}},
			{When: "interrupted", Steps: good}, // a session that was resumed after the overload
			{Match: `file-\d7\b`, Steps: scripted.Steps{
				scripted.Delay(100 * time.Millisecond), &scripted.Result{IsError: &overloaded, Text: &text, APIErrorStatus: 529},
			}},
			{Match: `file-\d3\b`, Steps: work(scripted.Text("It looks good to me."))},
		},
		Default: good,
	}
}
