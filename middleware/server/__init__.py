"""What stands around the doors: the app, the edge, answers, reload, the log, the model list."""
