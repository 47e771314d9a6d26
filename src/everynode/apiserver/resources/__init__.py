"""One module per built-in resource: defaults, validation and admission."""
