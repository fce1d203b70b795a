package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"runtime/debug"
	"strings"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// The official SDK runs the handlers of a wrapped server on its own goroutines
// and recovers nothing there (observed on v1.8.0): a panic would end the program.

// guarded is the context key of a request that came over a wrappedLink. Its value
// is the link.
type guarded struct{}

var errGoexit = errors.New("the handler ended its goroutine instead of returning (runtime.Goexit does that, and so does FailNow of a test)")

// guard makes s recover the panics of its handlers and middleware while they
// serve a wrappedLink. It may be called often: the guard is added only when it is
// not the outermost middleware of s.
func guard(s *mcpsdk.Server) {
	s.AddReceivingMiddleware(func(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
		g := guardOf(next)
		// All functions that guardOf returns have the same code.
		if reflect.ValueOf(next).Pointer() == reflect.ValueOf(g).Pointer() {
			return next
		}
		return g
	})
}

func guardOf(next mcpsdk.MethodHandler) mcpsdk.MethodHandler {
	return func(ctx context.Context, method string, req mcpsdk.Request) (mcpsdk.Result, error) {
		link, _ := ctx.Value(guarded{}).(*wrappedLink)
		if link == nil { // another transport of the server, or an outer guard has it
			return next(ctx, method, req)
		}
		result, err := recovered(context.WithValue(ctx, guarded{}, nil), method, req, next)
		if panicked, ok := errors.AsType[*session.PanicError](err); ok && (method == "initialize" || strings.HasPrefix(method, "notifications/")) {
			link.fail(panicked) // no call says so, or none could work
		}
		return result, err
	}
}

// recovered calls next on a separate goroutine, so that its end without a result is
// noticed, too.
func recovered(ctx context.Context, method string, req mcpsdk.Request, next mcpsdk.MethodHandler) (result mcpsdk.Result, err error) {
	err = &session.PanicError{Value: errGoexit, Message: method}
	done := make(chan struct{})
	kernel.GoExecutor{}.Go(func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				result, err = nil, &session.PanicError{Value: p, Message: method, Stack: debug.Stack()}
			}
		}()
		r, e := next(ctx, method, req)
		if e == nil {
			e = encodable(r)
		}
		if e != nil {
			r = nil
		}
		result, err = r, e
	})
	_ = kernel.GoExecutor{}.Await(context.Background(), done)
	return result, err
}

// encodable encodes a result that may hold values of the program's own types. The
// official SDK encodes results outside its middleware, and sends no answer for one
// that it cannot encode (observed on v1.8.0).
func encodable(r mcpsdk.Result) error {
	if tool, ok := r.(*mcpsdk.CallToolResult); ok && (tool == nil || plainResult(tool)) {
		return nil
	}
	_, err := json.Marshal(r)
	return err
}

// plainResult reports whether a tool's result holds no value of the program's own
// types. Most do not, and need not be encoded twice.
func plainResult(tool *mcpsdk.CallToolResult) bool {
	if _, encoded := tool.StructuredContent.(json.RawMessage); !encoded && tool.StructuredContent != nil {
		return false
	}
	for _, c := range tool.Content {
		switch c := c.(type) {
		case *mcpsdk.TextContent:
			if c == nil || len(c.Meta) > 0 {
				return false
			}
		case *mcpsdk.ImageContent:
			if c == nil || len(c.Meta) > 0 {
				return false
			}
		default:
			return false
		}
	}
	return len(tool.Meta) == 0
}
