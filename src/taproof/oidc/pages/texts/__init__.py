"""Every sentence of the pages: one TOML file per language, named by its tag, such as `pt.toml`.

`catalog.py` declares the sentences and their placeholders, and loads all files on import. To add a language, translate
`en.toml` into a new file, and add its tag to `core.project_texts.LANGUAGES`. Nothing else lists the languages.
"""
