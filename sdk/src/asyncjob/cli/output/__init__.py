"""How results are shown: tables, the details of one object, live views, JSON and YAML."""
