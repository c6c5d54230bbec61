package relevance

import "fmt"

// Epsilon is the ε-rule, Rᵢ = Σⱼ xᵢwᵢⱼ / (zⱼ + ε·sign zⱼ) · Rⱼ, with sign 0 = 1; zⱼ includes the bias if
// biases get relevance. ε = 0 is LRP-0, where zⱼ = 0 passes no relevance. Montavon et al. 2019, equations
// 10.1 and 10.2.
func Epsilon(epsilon float32) LayerRule {
	return LayerRule{fmt.Sprintf("epsilon(%g)", epsilon), func(b *Builder, l layer, r Value) Value {
		s := b.quotient(r, l.output(b), epsilon, anySign)
		l.recordBias(b, l.b0(), s)
		return l.contribution(b, l.n, s)
	}}
}
