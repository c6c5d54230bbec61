// The page is ready with the view of its address.

watchAddress();
readAddress();
document.documentElement.dataset.ready = "yes";
