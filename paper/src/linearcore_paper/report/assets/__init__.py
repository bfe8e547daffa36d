"""The page's template, styles and scripts, which `write_report` puts into one file."""
