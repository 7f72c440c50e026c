"""Files that options of several commands name: arrays, the report page, data for Model Explorer."""
