package optionfile

import "strings"

// rewrite gives the options that have several forms the one that their Go type
// decodes. The document has been checked.
func (r *reader) rewrite(root *Node) {
	var unset []*Node
	for i, p := range root.Pairs {
		value := p.Value
		switch key := p.Key.Text; {
		case key == "settings" && value.Kind == Text && strings.HasPrefix(strings.TrimSpace(value.Text), "{"):
			doc, err := ParseJSON([]byte(value.Text))
			if err != nil {
				r.fail(value, key, "begins like JSON and is not JSON", "give an object, or the path of a file")
				continue
			}
			root.Pairs[i].Value = doc
		case key == "settings" && value.Kind == Text:
			p.Key.Text = "settingsPath"
		case key == "mcpServers" && value.Kind == Text:
			p.Key.Text = "mcpConfigPath"
		case key == "taskBudget" && value.Kind == Object:
			if root.Pairs[i].Value = value.under("total"); len(value.Pairs) == 0 {
				root.Pairs[i].Value = &Node{}
			}
		case key == "env":
			vars := &Node{Kind: Object}
			for _, v := range value.Pairs {
				if v.Value.Kind == Null {
					unset = append(unset, v.Key)
				} else {
					vars.Pairs = append(vars.Pairs, v)
				}
			}
			if root.Pairs[i].Value = vars; len(vars.Pairs) == 0 {
				root.Pairs[i].Value = &Node{}
			}
		case key == "auth":
			for _, secret := range value.Pairs {
				if from := secret.Value; from.Kind == Object && len(from.Pairs) == 0 { // the variable has a default
					from.Pairs = []Pair{{&Node{Kind: Text, Text: "envVar"}, &Node{Kind: Text}}}
				}
			}
		}
	}
	if len(unset) > 0 { // both forms are one list
		list := root.under("unsetEnv")
		if list == root {
			list = &Node{Kind: List}
			root.Pairs = append(root.Pairs, Pair{&Node{Kind: Text, Text: "unsetEnv"}, list})
		}
		list.List = append(list.List, unset...)
	}
}
