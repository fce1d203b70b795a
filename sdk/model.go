package sdk

import (
	"encoding/json"
	"fmt"
)

// KeepModel lets the agent use the model that it has chosen.
func KeepModel() ModelPolicyResult { return ModelPolicyResult{} }

// UseModel chooses the model called name. With an empty name the agent fails the call.
func UseModel(name string) ModelPolicyResult { return ModelPolicyResult{Model: &name} }

// UseOwnModel routes the call to your own model (BYOK: bring your own key). The
// credentials are sent to the agent and nowhere else.
func UseOwnModel(name string, credentials CustomModel) ModelPolicyResult {
	return ModelPolicyResult{Model: &name, CustomModel: &credentials}
}

// WithParameters adds parameters for the model, such as temperature. parameters must
// marshal to a JSON object.
func WithParameters(r ModelPolicyResult, parameters any) (ModelPolicyResult, error) {
	raw, err := json.Marshal(parameters)
	if err != nil {
		return ModelPolicyResult{}, err
	}
	if raw[0] != '{' {
		return ModelPolicyResult{}, fmt.Errorf("sdk: the parameters for the model have type %T, which does not encode as a JSON object; pass a struct or a map", parameters)
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
