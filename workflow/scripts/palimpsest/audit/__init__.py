"""The audit: was a text in a model's training data, and can it be extracted?"""
