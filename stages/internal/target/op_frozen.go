package target

// frozen is the value for the original image, whatever image the expression is evaluated for: it has no
// derivative.
var frozen = operator{
	name: "frozen", form: "frozen(x), its value for the original image", names: []string{"x"}, required: 1,
	bind: func(_ *binder, t *term) error {
		t.Type = t.args[0].Type
		t.Frozen = true
		return nil
	},
	eval: func(_ *term, args []array) (array, error) { return args[0], nil },
	emit: func(*emitter, *term, []string) string { panic("frozen values are parameters") },
}

// other is the value for the image on the port other, which is frozen.
var other = operator{
	name: "other", form: "other(x), its value for the image on the port other", names: []string{"x"},
	required: 1,
	bind: func(b *binder, t *term) error {
		b.head.Needs.Other = true
		t.Type = t.args[0].Type
		t.Frozen = true
		return nil
	},
	emit: func(*emitter, *term, []string) string { panic("frozen values are parameters") },
}
