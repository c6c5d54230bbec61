// Package plan is the experiment language: it turns the text of an experiment into a [Plan] of cells, with
// every parameter decoded and every edge resolved, or into [Diags], which give the place, the cause and a
// hint for each error. It knows neither store nor device.
//
// The data passes through these files, in order:
//
//	load        Load and Parse call the steps below, one after another; extends
//	source      a text with its lines; characters that it can't contain
//	parse       text → tree of nodes, each with its place (yaml.go); syntax errors
//	override    --set changes the tree, --only the ids of axes
//	experiment  tree → declarations as written, with names resolved and nothing expanded
//	declare     one stage
//	axes        the axes and their ids
//	reference   values that contain ${axis}
//	seed        the seeds of stages, and which axes are replicates
//	remote      parameters that name a file by its address
//	order       the stages, each after those that it reads
//	expand      each stage: its axes, its combinations of ids, its cells
//	relation    sets of combinations, and the join of those of several inputs
//	binding     the implementation of a step, for each choice, and the assignments of its parameters
//	inputs      the upstream cells of each input of a cell, their ports, and what they declare
//	decode      parameters from the tree into the implementation's struct
//	check       errors of a whole cell: Validate, Check, Fits, parameters that name axes
//	implied     the stages that ports insert (Via, Else)
//	again       cells that are computed again for a part of their items (Again)
//	warnings    settings that are valid and probably not intended, such as axes that change no cell; remarks
//	            of stages on their files
//	precision   in which precisions results are computed, and which tables mix them
//	few         cells with too few items for their stage
//	plan        the result: Plan, Step, Cell, Input, Edge
//
// Further operations on a Plan: selector.go finds cells by name and cuts out the part that some of
// them need, files.go finds missing files, resolved.go writes the experiment as one file, and parameters as
// keys have them. Every error is a Diag, and a panic a bug (diag.go); hints are in hint.go.
package plan
