"""What commands read and print: manifest files, durations and counts, charts, progress."""
