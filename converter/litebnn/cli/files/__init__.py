"""Files that options of several commands name: arrays, the report page, and data for Model Explorer."""
