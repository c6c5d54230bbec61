// Package plan is the experiment language: it turns the text of an experiment into a [Plan] of cells, with
// every parameter decoded and every edge resolved, or into [Diags] that say what is wrong and where. It knows
// neither store nor device.
package plan
