"""The pages of the OpenID provider that users see: the sign-in page, the device pages and the problem page.

`language.py` chooses the language from what the application and the browser ask for. `rendering.py` renders
`templates/` with the sentences of `texts/`; it knows no routes, stores or clocks. The pages work without JavaScript:
the scripts in `static/` only wait for a change, count down and submit a form.
"""
