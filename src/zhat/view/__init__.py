"""What a person looks at: progress bars and pictures. No mathematics."""
