"""Every sentence that a user reads in a messenger: one TOML file per language, named by its tag, such as `pt.toml`.

`catalog.py` declares the sentences and their placeholders, loads all files on import, and finds the texts for a user's
language. To add a language, translate `en.toml` into a new file, and add its tag to `core.project_texts.LANGUAGES`.
Nothing else lists the languages.
"""
