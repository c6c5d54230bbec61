// Package plan is the experiment language: it turns the text of an experiment into a [Plan] of cells, with
// every parameter decoded and every edge resolved, or into [Diags], which have the place, the cause and a
// hint for all that is wrong. It knows neither store nor device.
//
// The way of the data through its files, in order:
//
//	load        Load and Parse; the steps below, one after another, and extends
//	source      a text with its lines; bytes that can't be in one
//	parse yaml  text → tree of yamlNodes, each with its place; syntax errors
//	override    --set changes the tree, --only the ids of axes
//	experiment  tree → declarations: what the file says, names looked up, nothing expanded
//	declare     one stage; axes: the axes; reference: values with ${axis} in them
//	order       stages so that each comes after those it takes from
//	expand      each stage: its axes, its combinations of ids, its cells
//	relation    sets of combinations, and how those of inputs join
//	binding     the implementation of a step, for each choice; where its parameters come from
//	inputs      which upstream cells each input of a cell has, and which of their ports
//	decode      parameters from the tree into the implementation's struct
//	check       what is wrong with a cell as a whole: Validate, Check, Fits, parameters that name axes
//	implied     the stages that ports put in (Via, Else)
//	warnings    what isn't wrong and is probably not meant; what stages remark on their files
//	plan        the result: Plan, Step, Cell, Input, Edge
//
// Of a Plan: selector finds cells by name, upto a part, files the missing files, resolved writes it as one
// file, value writes parameters as keys have them. Everything that is wrong is a Diag (diag, hint); panics
// are bugs (bug).
package plan
