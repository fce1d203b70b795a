package protocol

import (
	"fmt"
	"log/slog"
)

// The types below hold secrets. Printing or logging them says that there is one,
// and not which; on the wire they are whole.

const hidden = "(hidden)"

func hide(secret *string) {
	if *secret != "" {
		*secret = hidden
	}
}

func show(v any) string { return fmt.Sprintf("%+v", v) }

type plainCustomModel CustomModel

func (m CustomModel) shown() plainCustomModel {
	hide(&m.APIKey)
	return plainCustomModel(m)
}

// String hides the key.
func (m CustomModel) String() string { return show(m.shown()) }

// GoString hides the key.
func (m CustomModel) GoString() string { return m.String() }

// LogValue hides the key.
func (m CustomModel) LogValue() slog.Value { return slog.StringValue(m.String()) }

type plainBYOKConfig BYOKConfig

func (c BYOKConfig) shown() plainBYOKConfig {
	hide(&c.APIKey)
	return plainBYOKConfig(c)
}

// String hides the key.
func (c BYOKConfig) String() string { return show(c.shown()) }

// GoString hides the key.
func (c BYOKConfig) GoString() string { return c.String() }

// LogValue hides the key.
func (c BYOKConfig) LogValue() slog.Value { return slog.StringValue(c.String()) }

type plainValidate ValidateBYOKModelRequest

func (r ValidateBYOKModelRequest) shown() plainValidate {
	hide(&r.APIKey)
	return plainValidate(r)
}

// String hides the key.
func (r ValidateBYOKModelRequest) String() string { return show(r.shown()) }

// GoString hides the key.
func (r ValidateBYOKModelRequest) GoString() string { return r.String() }

// String hides the token.
func (t TokenReply) String() string { return "TokenReply(" + hidden + ")" }

// GoString hides the token.
func (t TokenReply) GoString() string { return t.String() }

// String hides the token.
func (t MCPToken) String() string { return "MCPToken(" + hidden + ")" }

// GoString hides the token.
func (t MCPToken) GoString() string { return t.String() }

// LogValue keeps the key of a model of the user's own out of logs.
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
