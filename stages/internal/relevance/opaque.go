package relevance

// opaque lists, in sorted order, the operators that relevance stops at on purpose, each with the reason why
// nothing flows through it.
var opaque = []string{
	"And",             // a truth value
	"ArgMax",          // a position, which moves in jumps
	"ArgMin",          // a position, which moves in jumps
	"Ceil",            // constant between jumps
	"Constant",        // depends on nothing
	"ConstantOfShape", // depends on a shape alone
	"Equal",           // a truth value
	"EyeLike",         // depends on a shape alone
	"Floor",           // constant between jumps
	"Greater",         // a truth value
	"GreaterOrEqual",  // a truth value
	"IsInf",           // a truth value
	"IsNaN",           // a truth value
	"Less",            // a truth value
	"LessOrEqual",     // a truth value
	"NonZero",         // positions, which move in jumps
	"Not",             // a truth value
	"OneHot",          // constants at positions, which move in jumps
	"Or",              // a truth value
	"Range",           // whole numbers that count
	"Round",           // constant between jumps
	"Shape",           // the same for every image
	"Sign",            // constant except for a jump
	"Size",            // the same for every image
	"Xor",             // a truth value
}
