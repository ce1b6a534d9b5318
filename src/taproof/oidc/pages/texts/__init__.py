"""Every sentence of the pages: one TOML file per language, named by its tag, such as `pt.toml`.

`catalog.py` declares the sentences and their placeholders, and loads all files on import. To add a language, translate
`en.toml` into a new file. Nothing else lists the languages.
"""
