// Package troupeotel sends traces and metrics of Troupe's sessions to OpenTelemetry, with
// the names of the semantic conventions for generative AI (v1.41.0).
//
//	telemetry, err := troupeotel.New(troupeotel.Config{})
//	...
//	result, err := sdk.Run(ctx, "hello", &sdk.Options{Tracer: telemetry.Session})
//
// A session has a span, below the span in the context that opens it, and below it spans
// for its turns, tool calls, callbacks and restarts. The agent gets the trace context in
// its environment (TRACEPARENT), a callback in its context. Prompts, outputs, arguments
// and texts of errors are sent only with [Config].Content. docs/events.md of the main
// module lists all names.
//
// It is a separate module, so that the main module does not depend on OpenTelemetry's SDK.
package troupeotel
