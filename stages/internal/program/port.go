package program

import (
	"reflect"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/target"
)

// ModelPort returns the input of a model for a stage with a parameter target: where that is an expression, the
// model that the stage reads is one whose answer is the expression.
func ModelPort(doc string) stages.Port {
	return stages.Port{Name: "model", Type: stages.Model, Doc: doc, Via: TargetStage, ViaIf: explainsExpression}
}

// explainsExpression reports whether the parameter target is an expression.
func explainsExpression(params any) bool {
	for _, f := range stages.Fields(params) {
		if f.Name == "target" && f.Type.Kind() == reflect.String {
			return target.Is(reflect.ValueOf(params).Elem().FieldByIndex(f.Index).String())
		}
	}
	return false
}
