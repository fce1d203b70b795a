// Package callback describes one call of a user's callback: the agent's request, the job
// that answers it, and the errors that say who may read their text. The sibling packages
// turn the requests of their kind into jobs.
//
// The meaning of a callback, and the code that runs a job, must not live here.
package callback
