package target

// constant is a number.
var constant = operator{name: opNumber}

// read is an output of the model.
var read = operator{name: "output"}
