package relevance

import "fmt"

// Epsilon is the ε-rule, Rᵢ = Σⱼ xᵢwᵢⱼ / (zⱼ + ε·sign zⱼ) · Rⱼ, with sign 0 = 1; zⱼ has the bias, which so
// takes a share, or not. With ε = 0 it is LRP-0, where a zⱼ that is 0 passes nothing on. Montavon et al.
// 2019, equations 10.1 and 10.2.
func Epsilon(epsilon float32) LayerRule {
	return LayerRule{fmt.Sprintf("epsilon(%g)", epsilon), func(b *Builder, l layer, r Value) Value {
		s := b.quotient(r, l.output(b), epsilon, anySign)
		l.toBias(b, l.b0(), s)
		return l.pull(b, l.n, s)
	}}
}
