"""The privacy policies that come with the platform, one YAML file each."""
