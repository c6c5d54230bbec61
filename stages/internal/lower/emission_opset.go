package lower

import "github.com/runexp/runexp/stages/internal/rewrite"

// emissionOpset writes all operators as those of opset [rewrite.Opset]. Where that changed any, the model is
// simplified once more: some of what ONNX Runtime simplifies it knows only in newer operators.
func (u *unit) emissionOpset() error {
	changed, err := rewrite.ToOpset(u.model, u.types)
	u.again = changed || u.opset != rewrite.Opset
	return err
}

// emissionOpsetAgain writes the operators that the second simplification made as those of the opset.
func (u *unit) emissionOpsetAgain() error {
	_, err := rewrite.ToOpset(u.model, nil)
	return err
}
