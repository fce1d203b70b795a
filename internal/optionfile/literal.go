package optionfile

import (
	"fmt"
	"slices"
)

// literal reports ${NAME} in a path, an address, a model or a variable of the environment,
// where it is not expanded. In prompts and commands it is text, and the agent expands it
// in MCP servers.
func (r *reader) literal(root *Node) {
	for _, p := range root.Pairs {
		switch key := p.Key.Text; {
		case key == "env":
			for _, v := range p.Value.Pairs {
				r.notExpanded(v.Value, join(key, v.Key.Text))
			}
		case key == "additionalDirectories":
			for i, v := range p.Value.List {
				r.notExpanded(v, fmt.Sprintf("%s[%d]", key, i))
			}
		case slices.Contains([]string{"cwd", "pathToExecutable", "model", "fallbackModel", "settingsPath", "mcpConfigPath", "debugFile", "projectConfigRoot", "proxy", "vpcEndpoint"}, key):
			r.notExpanded(p.Value, key)
		}
	}
}

func (r *reader) notExpanded(n *Node, at string) {
	if n.Kind != Text || n.expanded {
		return
	}
	if name := r.env.FindString(n.Text); name != "" {
		r.fail(n, at, "has "+name+", which is not expanded here", fmt.Sprintf("write {$env: %q}", n.Text))
	}
}
