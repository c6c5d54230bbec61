package ort

// #include <signal.h>
//
// enum { least = 1, most = 31 }; // the signals that aren't of real time
//
// static struct sigaction kept[most + 1];
// static int any;
//
// // Go's own handlers have SA_ONSTACK, also where they are none, and are one function: that
// // of SIGURG, since those of faults may be [CatchFaults]'s.
// static int ours(const struct sigaction *a) {
// 	return (a->sa_flags & SA_ONSTACK) &&
// 		(a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN ||
// 			a->sa_sigaction == kept[SIGURG].sa_sigaction);
// }
//
// static void keep_handlers(void) {
// 	for (int s = least; s <= most; s++) {
// 		struct sigaction now;
// 		if (sigaction(s, 0, &now) == 0 && (!any || ours(&now))) kept[s] = now;
// 	}
// 	any = 1;
// }
//
// static void restore_handlers(void) {
// 	for (int s = least; s <= most; s++) {
// 		struct sigaction now;
// 		if (sigaction(s, 0, &now) == 0 && now.sa_sigaction != kept[s].sa_sigaction && !ours(&now))
// 			sigaction(s, &kept[s], 0);
// 	}
// }
import "C"

import "sync"

var handlers sync.Mutex // guards kept

// keepingHandlers calls f and puts back the handlers of signals that f put others in the
// place of. The CUDA provider does so, with handlers that don't run on the stack that Go
// has for them: the next Ctrl-C, or Slurm's SIGTERM, would end the process with a fatal
// error of Go's instead of letting it finish its work.
func keepingHandlers(f func() error) error {
	handlers.Lock()
	C.keep_handlers()
	handlers.Unlock()
	defer func() {
		handlers.Lock()
		defer handlers.Unlock()
		C.restore_handlers()
	}()
	return f()
}
