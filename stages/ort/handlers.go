package ort

// #include <signal.h>
//
// enum { least = 1, most = 31 }; // without real-time signals
//
// static struct sigaction kept[most + 1];
// static int any;
//
// // Go sets SA_ONSTACK even for default actions, and has one function for all signals. SIGURG
// // shows it, since faults may be handled by [CatchFaults].
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

var handlers sync.Mutex // guards the C variable kept

// keepingHandlers calls f and restores Go's signal handlers if f replaced them. The CUDA provider replaces
// them by handlers that don't run on Go's signal stack: the next Ctrl-C, or Slurm's SIGTERM, would crash Go
// instead of letting the process finish its work.
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
