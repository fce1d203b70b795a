package main

import (
	"fmt"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// options returns the options of the named agent. The scripted agent asks for a model as Qoder CLI does.
func options(name string) (*sdk.Options, error) {
	switch name {
	case "scripted":
		script := &scripted.Script{Dialect: agent.Qoder, Turns: []scripted.Turn{{Steps: asked}}}
		return &sdk.Options{
			Backend: scripted.New(scripted.WithScript(script)),
			Auth:    sdk.QoderCLIAuth(),
		}, nil
	case "qoder":
		return &sdk.Options{Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.QoderCLIAuth()}, nil
	}
	return nil, fmt.Errorf("no agent %q with a choice of models; there are scripted and qoder", name)
}

var asked = scripted.Steps{
	&scripted.ModelPolicy{Fields: models("auto", "performance")},
	&scripted.ModelPolicy{Purpose: "web_fetch", Fields: models("auto", "lite")},
	&scripted.ModelPolicy{Purpose: "compact"}, // its list of models lacks the cheap one
	&scripted.ModelPolicy{Purpose: "subagent"},
	&scripted.ModelPolicy{Purpose: "of_a_later_release"},
	scripted.Text("Theirs is longer."),
}

func models(names ...string) map[string]any {
	var list []any
	for _, name := range names {
		list = append(list, map[string]any{"value": name, "displayName": name})
	}
	return map[string]any{"models": list}
}
