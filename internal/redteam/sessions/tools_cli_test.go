package sessions_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
)

func TestCLIToolsAndTheirInputs(t *testing.T) {
	r := newRig(t)
	o := r.options()
	o.Tools = sdk.All()
	o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.Deny("no"), nil
	}
	c := sdk.NewClient(o)
	if err := c.Connect(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.turn(c, one(shell("true")))
	_ = c.Close(r.ctx)
	seen := map[string]bool{}
	for _, q := range r.model.Requests() {
		if q.Endpoint != modelapi.Messages {
			continue
		}
		var b struct {
			Tools []struct {
				Name   string
				Schema struct{ Properties map[string]json.RawMessage } `json:"input_schema"`
			}
		}
		_ = json.Unmarshal(q.Body, &b)
		for _, x := range b.Tools {
			if seen[x.Name] {
				continue
			}
			seen[x.Name] = true
			var keys []string
			for k := range x.Schema.Properties {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			t.Log(x.Name, keys)
		}
	}
}
