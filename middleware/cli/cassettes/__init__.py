"""The commands around recordings: record, replay, cassette."""
