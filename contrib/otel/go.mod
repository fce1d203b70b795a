module github.com/agent-troupe/troupe/contrib/otel

go 1.26.0

replace github.com/agent-troupe/troupe => ../..

require (
	github.com/agent-troupe/troupe v0.0.0
	github.com/stretchr/testify v1.12.1
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/metric v1.47.0
	go.opentelemetry.io/otel/sdk v1.47.0
	go.opentelemetry.io/otel/sdk/metric v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
)
