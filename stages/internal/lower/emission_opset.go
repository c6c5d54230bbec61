package lower

import "github.com/runexp/runexp/stages/internal/rewrite"

// emissionOpset converts all operators to opset [rewrite.Opset]. If that changed any, the model is
// simplified once more: ONNX Runtime knows some simplifications only for newer operators.
func (u *unit) emissionOpset() error {
	changed, err := rewrite.ToOpset(u.model, u.types)
	u.again = changed || u.opset != rewrite.Opset
	return err
}

// emissionOpsetAgain converts the operators that the second simplification has emitted.
func (u *unit) emissionOpsetAgain() error {
	_, err := rewrite.ToOpset(u.model, nil)
	return err
}
