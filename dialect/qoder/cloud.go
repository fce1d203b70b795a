package qoder

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Cloud is the dialect of Qoder's Cloud Agent, as package agent/cloud serves it: that of qodercli, without almost all of
// its options and requests. The zero value is ready to use, and safe for concurrent use.
type Cloud struct{ Dialect }

// NewCloud returns the dialect of the Cloud Agent.
func NewCloud() Cloud { return Cloud{} }

var _ dialect.Dialect = Cloud{}

// Traits implements dialect.Dialect. A connection ends at once; the graces are for the requests that stop a turn.
func (d Cloud) Traits() dialect.Traits {
	t := d.Dialect.Traits()
	t.FlushGrace, t.QuietBeforeEOF = 0, 0
	t.EOFGrace, t.TermGrace, t.InterruptGrace = 10*time.Second, 2*time.Second, 10*time.Second
	t.ResultAfterCancelled = false
	t.RemembersMessages, t.KeepsTurns = true, true
	t.ExecutableNames, t.ExecutableEnv, t.ProviderEnv = nil, "", nil
	return t
}

// Validate implements dialect.Dialect.
func (Cloud) Validate(o *dialect.Input) ([]session.Warning, error) {
	p := checkInCloud(o)
	return p.Warnings, p.Err()
}

// Launch implements dialect.Dialect: there is nothing to launch.
func (Cloud) Launch(o *dialect.Input) (dialect.Launch, error) {
	p := checkInCloud(o)
	return dialect.Launch{Warnings: p.Warnings}, p.Err()
}

// inCloud are the options that can be used with ExperimentalCloudAgent: those of the vendor's SDK 1.0.39 (observed), and
// those of the host that concern neither tools nor permissions.
func inCloud() []string {
	return []string{"ExperimentalCloudAgent", "Auth", "Debug", "DebugFile", "Env", "IncludePartialMessages", "OnAuthExpired", "Stderr",
		"Backend", "Runtime", "OnEvent", "OnMessage", "Tracer", "Limits", "InitializeTimeout", "CloseTimeout", "Graces", "InterruptGrace",
		"Supervisors", "Children", "MaxLine", "MaxRestarts", "RestartWindow", "EqualDeaths", "PassivateAfter", "RestartBackoff",
		"Recovery", "DecideRecovery", "Discard"}
}

func checkInCloud(o *dialect.Input) *build.Problems {
	p := &build.Problems{Backend: Name}
	if o.ExperimentalCloudAgent == nil {
		p.Add("ExperimentalCloudAgent", "is missing, and the backend is the cloud", "name the session, or how to create it")
	}
	build.CheckCloud(o, p)
	options, known := reflect.ValueOf(&o.Options).Elem(), inCloud()
	for _, f := range reflect.VisibleFields(options.Type()) {
		if len(f.Index) == 1 && !slices.Contains(known, f.Name) && given(options.FieldByIndex(f.Index)) {
			p.Add(f.Name, "cannot be combined with ExperimentalCloudAgent: the cloud agent's definition has the model, the prompt and the tools", "leave it out")
		}
	}
	p.AddIf(o.HasSessionStore, "SessionStore", "cannot be combined with ExperimentalCloudAgent", "leave it out")
	if _, err := AccessToken(o); err != nil {
		p.Add("Auth", err.Error(), "use AccessToken or AccessTokenFromEnv")
	}
	p.NoEffect("Debug", o.Debug)
	p.NoEffect("DebugFile", o.DebugFile != "")
	p.NoEffect("IncludePartialMessages", o.IncludePartialMessages)
	return p
}

// given reports whether an option has a value. An empty list is not a value.
func given(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() > 0
	}
	return !v.IsZero()
}

// AccessToken returns the access token of the options, a secret. The cloud takes no other login.
func AccessToken(o *dialect.Input) (string, error) {
	switch {
	case o.Auth == nil:
		return "", errNoAuth
	case o.Auth.Type != session.AuthAccessToken:
		return "", errNoToken
	}
	token, err := secret(o, o.Auth.AccessToken, o.Auth.EnvVar)
	if err == nil && token == "" {
		err = errNoToken
	}
	return token, err
}

const (
	errNoAuth  cloudAuthError = "is missing, and the cloud takes no request without"
	errNoToken cloudAuthError = "has no access token, and the cloud takes nothing else"
)

// cloudAuthError says why there is no token for the cloud.
type cloudAuthError string

func (e cloudAuthError) Error() string { return string(e) }

// Initialize implements dialect.Dialect.
func (Cloud) Initialize(*dialect.Input) (json.RawMessage, error) {
	return json.RawMessage(`{"subtype":"initialize"}`), nil
}

// CheckInitialize implements dialect.Dialect.
func (Cloud) CheckInitialize(*dialect.Input, json.RawMessage) error { return nil }

// AfterInitialize implements dialect.Dialect.
func (Cloud) AfterInitialize(*dialect.Input) []protocol.HostRequest { return nil }

// BeforeEOF implements dialect.Dialect.
func (Cloud) BeforeEOF(json.RawMessage) []protocol.HostRequest { return nil }

// Resume implements dialect.Dialect. The agent knows its session.
func (Cloud) Resume(o *dialect.Input, _ string, rerun bool) (*dialect.Input, error) {
	if rerun {
		return nil, &session.UnsupportedCapabilityError{Backend: Name, Request: "re-run of an interrupted turn"}
	}
	next := *o
	return &next, nil
}

// Encode implements dialect.Dialect. Interrupt is the only request of a session in the cloud.
func (d Cloud) Encode(r protocol.HostRequest) (json.RawMessage, error) {
	if r.Subtype() != "interrupt" {
		return nil, &session.UnsupportedCapabilityError{Backend: Name + " cloud", Request: r.Subtype()}
	}
	return d.Dialect.Encode(r)
}

// Capability implements dialect.Dialect.
func (Cloud) Capability(protocol.HostRequest) string { return "" }
