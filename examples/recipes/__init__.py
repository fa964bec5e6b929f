"""The code of the recipes in `docs/recipes`: a folder, with an app of its own, for each."""
