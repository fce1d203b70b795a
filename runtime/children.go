package runtime

import "context"

// sessionKey is where the contexts of Options.Children have their session.
type sessionKey struct{}

// SessionOf returns the session of the child that ctx belongs to: the context of one of the
// functions of a [session.Behavior], or one derived from it. It is nil for any other
// context. The session may not be ready yet, or may be closing; its methods then wait, or
// say so.
func SessionOf(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

// childContext adds the session, and what spec adds, to the contexts of its children.
func (s *Session) childContext(spec *Spec) func(context.Context) context.Context {
	add := spec.ChildContext
	return func(ctx context.Context) context.Context {
		ctx = context.WithValue(ctx, sessionKey{}, s)
		if add != nil {
			ctx = add(ctx)
		}
		return ctx
	}
}
