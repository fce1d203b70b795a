// Package modelpolicy answers the agent's get_model_policy requests with the
// user's callback.
package modelpolicy
