package sdk

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
)

// KeepModel lets the agent use the model that it has chosen.
func KeepModel() protocol.ModelPolicyReply { return protocol.ModelPolicyReply{} }

// UseModel chooses the model called name. With an empty name the agent fails the call.
func UseModel(name string) protocol.ModelPolicyReply { return protocol.ModelPolicyReply{Model: &name} }

// UseOwnModel routes the call to your own model (BYOK: bring your own key). The
// credentials are sent to the agent and nowhere else.
func UseOwnModel(name string, credentials protocol.CustomModel) protocol.ModelPolicyReply {
	return protocol.ModelPolicyReply{Model: &name, CustomModel: &credentials}
}

// WithParameters adds parameters for the model, such as temperature. parameters must
// marshal to a JSON object.
func WithParameters(r protocol.ModelPolicyReply, parameters any) (protocol.ModelPolicyReply, error) {
	raw, err := json.Marshal(parameters)
	if err != nil {
		return protocol.ModelPolicyReply{}, err
	}
	if raw[0] != '{' {
		return protocol.ModelPolicyReply{}, fmt.Errorf("sdk: the parameters for the model have type %T, which does not encode as a JSON object; pass a struct or a map", parameters)
	}
	r.Parameters = raw
	return r, nil
}

// modelIsResolved is the error of choosing a model that ResolveModel chooses.
func (c *Client) modelIsResolved() error {
	if !c.picksModel {
		return nil
	}
	return &ConfigError{
		Option: "ResolveModel", Problem: "chooses the model of every call, and SetModel would change nothing",
		Fix: "let ResolveModel answer with the model",
	}
}
