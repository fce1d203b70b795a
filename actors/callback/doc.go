// Package callback describes one call of a user's callback: the request that the agent
// made, the job that answers it, and the errors that say who may read what. The
// packages beside it turn the requests of their kind into jobs.
//
// What must not live here: what a callback means, and how a job runs.
package callback
