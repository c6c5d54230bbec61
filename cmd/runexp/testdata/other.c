// A library that is no plugin.
int nothing;
