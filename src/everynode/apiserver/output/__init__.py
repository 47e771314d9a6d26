"""How answers look: representations, tables, discovery and OpenAPI documents."""
