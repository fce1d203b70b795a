// Package batch is a model behind an API of batches: for half the price, the Messages API and
// that of OpenAI answer requests that are submitted together, within a day. [Client] is a
// model.Model, so the embedded agent and a fleet use it like any other: it collects the requests
// of all sessions for a while, submits them, and each session waits until its answer is there.
//
// With [Config].Dir it remembers what it has submitted. A program that starts again and makes the
// same request, byte for byte, gets the answer that is already paid for.
//
// Not in this package: what the APIs say on the wire. Package model has that, with the prices.
package batch
