package protocol

import (
	"fmt"
	"log/slog"
	"net/url"

	"github.com/agent-troupe/troupe/base/shown"
)

// The types below hold secrets. When they are printed or logged, a mark replaces the
// secret; on the wire they are whole. A slice of them that is logged as JSON shows the
// secrets, because slog marshals it as for the wire. Types whose secrets are in fields of
// many names, further down, show no text at all.

const hidden = "(hidden)"

func hide(secret *string) {
	if *secret != "" {
		*secret = hidden
	}
}

// hideIn hides who logs in at a URL.
func hideIn(address *string) {
	if u, err := url.Parse(*address); err != nil || u.User != nil {
		*address = hidden
	}
}

func show(v any) string { return fmt.Sprintf("%+v", v) }

type plainCustomModel CustomModel

func (m CustomModel) shown() plainCustomModel {
	hide(&m.APIKey)
	hideIn(&m.URL)
	return plainCustomModel(m)
}

// String hides the key.
func (m CustomModel) String() string { return show(m.shown()) }

// Format writes String for every verb.
func (m CustomModel) Format(f fmt.State, verb rune) { shown.Print(f, verb, m.String()) }

// LogValue hides the key.
func (m CustomModel) LogValue() slog.Value { return slog.StringValue(m.String()) }

type plainBYOKConfig BYOKConfig

func (c BYOKConfig) shown() plainBYOKConfig {
	hide(&c.APIKey)
	hideIn(&c.BaseURL)
	return plainBYOKConfig(c)
}

// String hides the key.
func (c BYOKConfig) String() string { return show(c.shown()) }

// Format writes String for every verb.
func (c BYOKConfig) Format(f fmt.State, verb rune) { shown.Print(f, verb, c.String()) }

// LogValue hides the key.
func (c BYOKConfig) LogValue() slog.Value { return slog.StringValue(c.String()) }

type plainValidate ValidateBYOKModelRequest

func (r ValidateBYOKModelRequest) shown() plainValidate {
	hide(&r.APIKey)
	hideIn(&r.URL)
	return plainValidate(r)
}

// String hides the key.
func (r ValidateBYOKModelRequest) String() string { return show(r.shown()) }

// Format writes String for every verb.
func (r ValidateBYOKModelRequest) Format(f fmt.State, verb rune) { shown.Print(f, verb, r.String()) }

// LogValue hides the key.
func (r ValidateBYOKModelRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String hides the token.
func (t TokenReply) String() string { return "TokenReply(" + hidden + ")" }

// Format writes String for every verb.
func (t TokenReply) Format(f fmt.State, verb rune) { shown.Print(f, verb, t.String()) }

// LogValue hides the token.
func (t TokenReply) LogValue() slog.Value { return slog.StringValue(t.String()) }

// String hides the token.
func (t MCPToken) String() string { return "MCPToken(" + hidden + ")" }

// Format writes String for every verb.
func (t MCPToken) Format(f fmt.State, verb rune) { shown.Print(f, verb, t.String()) }

// LogValue hides the token.
func (t MCPToken) LogValue() slog.Value { return slog.StringValue(t.String()) }

// LogValue hides the key.
func (r CreateBYOKConfigRequest) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("config", r.Config))
}

// LogValue hides the key.
func (r UpdateBYOKConfigRequest) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("config", r.Config))
}

// LogValue hides the key.
func (r CheckBYOKConfigRequest) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("config", r.Config))
}

// LogValue hides the key.
func (r BYOKConfigResponse) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("config", r.Config))
}

// LogValue hides the keys.
func (r BYOKConfigsResponse) LogValue() slog.Value { return slog.StringValue(show(r.Configs)) }

// LogValue hides the token.
func (r MCPInjectTokenRequest) LogValue() slog.Value {
	return slog.GroupValue(slog.String("serverName", r.ServerName), slog.Any("token", r.Token))
}

// LogValue keeps the key of a model that the user brings out of logs.
func (r ModelPolicyReply) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("type", r.Type)}
	if r.Model != nil {
		attrs = append(attrs, slog.String("model", *r.Model))
	}
	if r.CustomModel != nil {
		attrs = append(attrs, slog.Any("custom_model", *r.CustomModel))
	}
	return slog.GroupValue(attrs...)
}

// Servers, settings and environments hold secrets in fields of many names. Types with
// such fields are printed and logged as the names of the fields that are set.

// Format writes which fields are set, without secrets, for every verb.
func (c MCPServerConfig) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(c)) }

// LogValue returns the text that Format writes, for package log/slog.
func (c MCPServerConfig) LogValue() slog.Value { return slog.StringValue(shown.Struct(c)) }

// Format writes which fields are set, without secrets, for every verb.
func (r ClaimSessionRequest) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r ClaimSessionRequest) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (r ApplyFlagSettingsRequest) Format(f fmt.State, verb rune) {
	shown.Print(f, verb, shown.Struct(r))
}

// LogValue returns the text that Format writes, for package log/slog.
func (r ApplyFlagSettingsRequest) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (r UpdateSettingsRequest) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r UpdateSettingsRequest) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (a AgentDefinition) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(a)) }

// LogValue returns the text that Format writes, for package log/slog.
func (a AgentDefinition) LogValue() slog.Value { return slog.StringValue(shown.Struct(a)) }

// Format writes which fields are set, without secrets, for every verb.
func (s AgentMCPServer) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(s)) }

// LogValue returns the text that Format writes, for package log/slog.
func (s AgentMCPServer) LogValue() slog.Value { return slog.StringValue(shown.Struct(s)) }

// Format writes which fields are set, without secrets, for every verb.
func (r InitializeRequest) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r InitializeRequest) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (s MCPServerStatus) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(s)) }

// LogValue returns the text that Format writes, for package log/slog.
func (s MCPServerStatus) LogValue() slog.Value { return slog.StringValue(shown.Struct(s)) }

// Format writes which fields are set, without secrets, for every verb.
func (r MCPSetServersRequest) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r MCPSetServersRequest) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (r MCPStatusResponse) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r MCPStatusResponse) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (r ReloadPluginsResponse) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r ReloadPluginsResponse) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (m MCPStatusChangeMessage) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(m)) }

// LogValue returns the text that Format writes, for package log/slog.
func (m MCPStatusChangeMessage) LogValue() slog.Value { return slog.StringValue(shown.Struct(m)) }

// Format writes which fields are set, without secrets, for every verb.
func (r ModelPolicyReply) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }
